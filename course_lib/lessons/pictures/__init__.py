"""The moving pictures, one folder per picture. A lesson calls their functions from
``course_lib.lessons``, which loads them at their first use."""
