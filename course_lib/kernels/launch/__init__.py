"""How a reference kernel is launched: the table of its variants, and what of the device and the tensors chooses among them."""
