"""Masking of secrets, for sync and for exports.

rules         the kept rules: what is a secret, by form, by name, and always
redactor      `Redaction`: applies rules to texts, JSON values and files; numbered marks
personal      rules for the home folder and the name of the user, and the rules file of the user
"""

from sessionary.redaction.redactor import Placeholders, Redaction
from sessionary.redaction.rules import ALWAYS, COMMON, MARK

__all__ = ["ALWAYS", "COMMON", "MARK", "Placeholders", "Redaction"]
