"""The import name of Maestro; a Maestro that is really installed is loaded instead."""

from sessionary.lazy_exports import give_way

give_way(__name__)
