// Empty on purpose: the shared precompiled header needs a target of its own.
