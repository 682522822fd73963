"""``python -m cordwood.wire Produce 9`` prints the functions that the compiler generates for request and response."""

import sys

from .compiler import sources
from .registry import API_BY_NAME


def main(arguments: list[str]) -> int:
    match arguments:
        case [name, version] if name in API_BY_NAME and version.isdecimal():
            api = API_BY_NAME[name]
            if int(version) not in api.versions:
                print(f"{name} has versions {api.versions.start} to {api.versions.stop - 1}", file=sys.stderr)
                return 2
            for cls in (api.request, api.response):
                for source in sources(cls, int(version)):
                    print(f"# {cls.__name__} v{version}\n{source}")
            return 0
        case _:
            print("usage: python -m cordwood.wire API VERSION; APIs: " + " ".join(API_BY_NAME), file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
