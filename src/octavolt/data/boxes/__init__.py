"""Pictures with boxes: formats, checks, augmentation."""
