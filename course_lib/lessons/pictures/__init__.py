"""The moving pictures of several lessons, one folder per picture; that of one lesson lies in its
folder. A lesson calls their functions from
``course_lib.lessons``, which loads them at their first use."""
