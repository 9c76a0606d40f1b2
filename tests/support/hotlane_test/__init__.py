"""Real servers, writers with a ledger and faults, for the tests and the demonstration."""
