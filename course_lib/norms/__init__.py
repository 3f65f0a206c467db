"""LayerNorm and RMSNorm in plain code (reference, statistics) and behind PyTorch's signatures
(functional, modules)."""
