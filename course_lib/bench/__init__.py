"""Measure kernels: device time against the floor. Measurements are stored with device, versions and
date."""
