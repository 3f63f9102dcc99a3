"""Small trainings of every kind on handwritten digits, written as users write them.

Each takes the guard, a Pace, and the history that every loss goes into.
"""
