"""Becomes the command it is given, as leader of a session whose terminal is standard input."""

from __future__ import annotations

import fcntl
import os
import sys
import termios

os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
