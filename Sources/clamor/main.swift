print("clamor")
