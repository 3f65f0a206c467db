"""Lesson 06: many numbers become one sum. Which thread adds which partner's, through shared memory or by shuffles."""
