"""``python -m cordwood.config`` prints docs/configuration.md."""

from .document import configuration_page

if __name__ == "__main__":
    print(configuration_page(), end="")
