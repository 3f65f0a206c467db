"""Lesson 07: step through the memory accesses of any kernel. Which program asks for which address,
and how often?"""
