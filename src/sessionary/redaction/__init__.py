"""Masking of secrets, for sync and for exports.

rules         the kept rules: what is a secret, by form, by name, and always
redactor      `Redaction`: applies rules to texts, JSON values and files
placeholders  numbered marks, and how often each rule has matched
personal      rules for the home folder and the name of the user, and the rules file of the user
"""

from sessionary.redaction.placeholders import Placeholders
from sessionary.redaction.redactor import Redaction
from sessionary.redaction.rules import ALWAYS, COMMON, MARK

__all__ = ["ALWAYS", "COMMON", "MARK", "Placeholders", "Redaction"]
