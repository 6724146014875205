// Users of the library need one import only: elements, JIDs and errors are the codec's.
@_exported public import XMPPCodec
