// One import is enough for those who use the library: its elements, JIDs and errors are the codec's.
@_exported public import XMPPCodec
