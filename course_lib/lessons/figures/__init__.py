"""Charts that no lesson has for itself: of the benchmark, of a learner's own kernels, of measured
inputs."""
