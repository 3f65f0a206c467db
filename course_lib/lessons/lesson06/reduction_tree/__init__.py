"""Lesson 06: threads add up many numbers, through shared memory or by shuffles. Which thread adds
the number of which partner?"""
