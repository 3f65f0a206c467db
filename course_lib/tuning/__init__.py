"""The judgement of a learner's launch of a norm kernel: what the compiler says about it, and how
near it comes to the floor on a GPU."""
