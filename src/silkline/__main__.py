"""`python -m silkline`."""

import sys

from silkline.cli.main import main

sys.exit(main())
