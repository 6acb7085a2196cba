def fingerprint(data, checked):
    return b""
def changed(old, data, checked):
    return []
