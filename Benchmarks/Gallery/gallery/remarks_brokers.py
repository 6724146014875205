"""Explanations of surprising figures; each is printed only where its condition holds."""


def remarks(answers, questions):
    return []
