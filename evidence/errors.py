"""The errors that end a command in one line, with the exit code of each.

HwlotteryError            2  something the user can mend before anything runs
├── RunError              2  no run directory, of a newer format, unreadable, or there already
├── SigningError          2  a key cannot sign, or a signature not be checked
├── ProfileError          2  (probes) unknown profile, key or value
├── PolicyError           2  (scoring) unknown policy, key or value
├── ReferenceFileError    2  (references) the same of a reference file
├── ProviderFileError     2  (scoring) the same of a provider.yaml
├── NoTicket, NoClaim     2  (reports) nothing to write of, or nothing to write it by
├── NoNodeList        2/3/4  (reports) no list of nodes; because of NO-GO 3, because of INCONCLUSIVE 4
├── RunCutShort           6  (runner) the surroundings ended the run: a full disk
└── RunStopped  130/143/129  (runner) Ctrl-C, SIGTERM or SIGHUP; the run directory resumes
"""


class HwlotteryError(Exception):
    """What a user meets: the message is one line that says what to do."""

    exit_code: int = 2


class RunError(HwlotteryError):
    """Something is wrong with a run directory that the user can mend."""
