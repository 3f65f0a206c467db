"""Measuring kernels: device time against the floor, and measurements kept with device, versions and date."""
