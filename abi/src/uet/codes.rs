//! Code points of Ultra Ethernet, as they stand on the wire.

crate::codes::codes! {
    #[doc = "Type of a PDS header (UE table 3-16)."]
    PdsType { Tss = 1 "Security header: none of its bits are read."; RudReq = 2 "Reliable, unordered."; RodReq = 3 "Reliable, ordered."; RudiReq = 4 "Reliable, unordered, idempotent."; RudiResp = 5 "Its answer."; UudReq = 6 "Unreliable, unordered."; Ack = 7 "ACK."; AckCc = 8 "ACK with congestion state.";
        AckCcx = 9 "Reserved form of it."; Nack = 10 "NACK."; Control = 11 "Control packet."; NackCcx = 12 "Reserved form of the NACK."; RudCcReq = 13 "RUD with congestion state."; RodCcReq = 14 "ROD with congestion state."; }
    #[doc = "SES header behind a PDS header (UE table 3-32)."]
    NextHeader { None = 0 "Nothing."; Small = 1 "Small request."; Medium = 2 "Medium request."; Standard = 3 "Standard request."; Response = 4 "Response."; ResponseData = 5 "Response with data."; ResponseDataSmall = 6 "Response with data to a short request."; }
    #[doc = "Type of a control packet (UE table 3-38)."]
    ControlType { Noop = 0 "Fills a PSN."; AckRequest = 1 "Asks again for the answer to a PSN."; ClearCommand = 2 "Responses up to a PSN may go."; ClearRequest = 3 "A clear is wanted."; CloseCommand = 4 "The initiator closes the PDC."; CloseRequest = 5 "The target wants it closed.";
        Probe = 6 "Asks for an ACK."; Credit = 7 "Credit."; CreditRequest = 8 "Credit is wanted."; Negotiation = 9 "Features."; }
    #[doc = "What a target wants, in its ACKs (UE table 3-44)."]
    AckRequest { None = 0 "Nothing."; Clear = 1 "A clear."; Close = 2 "A close."; }
    #[doc = "Why a packet was refused (UE 3.5.12)."]
    NackCode { Trimmed = 0x01 "It was trimmed."; TrimmedLastHop = 0x02 "It was trimmed at the last hop."; NoPdc = 0x04 "No PDC is free."; NoCcc = 0x05 "No congestion context is free."; NoBitmap = 0x06 "No bitmap is free."; NoPacketBuffer = 0x07 "No buffer is free."; NoGuaranteed = 0x08 "No place for its response.";
        NoMessage = 0x09 "No message line is free."; NoResource = 0x0a "Something else is not free."; OutOfWindow = 0x0b "The PSN is outside the window."; RodOutOfOrder = 0x0d "A ROD packet in front of it is missing."; InvalidPdc = 0x0e "There is no such PDC."; HeaderMismatch = 0x0f "Ids do not belong together.";
        Closing = 0x10 "The PDC is closing."; ClosingInError = 0x11 "It closes with requests of its own open."; NotReceived = 0x12 "The PSN asked about was not received."; ResponseLost = 0x13 "Its response is lost."; AckWithData = 0x14 "Its ACK carries data."; InvalidSyn = 0x15 "SYN with another Start_PSN, or beyond the window.";
        ModeMismatch = 0x16 "RUD on a ROD PDC, or the other way."; NewStart = 0x17 "Another Start_PSN is required."; InProgress = 0x18 "Received and not finished."; Unexpected = 0x19 "Not in this state, or not supported."; InferredLoss = 0x1a "The receiver believes that it is lost."; }
    #[doc = "Operation of a request (UE table 3-17)."]
    SesOpcode { NoOp = 0x00 "Nothing."; Write = 0x01 "WRITE."; Read = 0x02 "READ."; Atomic = 0x03 "ATOMIC."; FetchingAtomic = 0x04 "FETCHING_ATOMIC."; Send = 0x05 "SEND."; RendezvousSend = 0x06 "RENDEZVOUS_SEND."; DatagramSend = 0x07 "DATAGRAM_SEND."; DeferrableSend = 0x08 "DEFERRABLE_SEND."; TaggedSend = 0x09 "TAGGED_SEND.";
        RendezvousTaggedSend = 0x0a "RENDEZVOUS_TSEND."; DeferrableTaggedSend = 0x0b "DEFERRABLE_TSEND."; DeferrableReady = 0x0c "DEFERRABLE_RTR."; TaggedAtomic = 0x0d "TSEND_ATOMIC."; TaggedFetchAtomic = 0x0e "TSEND_FETCH_ATOMIC."; MessageError = 0x0f "MSG_ERROR."; }
    #[doc = "Kind of a response (UE table 3-18)."]
    ResponseOpcode { Default = 0 "Default response."; Response = 1 "Response."; WithData = 2 "Response with data."; NoResponse = 3 "None yet."; }
    #[doc = "What became of a request (UE table 3-19)."]
    ReturnCode { Null = 0x00 "Nothing new."; Ok = 0x01 "Done."; BadGeneration = 0x02 "Of the resource."; Disabled = 0x03 "Resource."; DisabledGeneration = 0x04 "Of the resource."; NoMatch = 0x05 "No receive."; UnsupportedOp = 0x06 "Operation."; UnsupportedSize = 0x07 "Longer than its buffer."; AtInvalid = 0x08 "Translation.";
        AtPermission = 0x09 "Translation."; AtsError = 0x0a "Translation."; AtNoTranslation = 0x0b "Translation."; AtOutOfRange = 0x0c "Translation."; HostPoisoned = 0x0d "Host."; HostFailed = 0x0e "Host."; AmoUnsupportedOp = 0x0f "Atomic operation."; AmoUnsupportedType = 0x10 "Atomic type."; AmoUnsupportedSize = 0x11 "Atomic size.";
        AmoUnaligned = 0x12 "Atomic address."; FpNan = 0x13 "Result."; FpUnderflow = 0x14 "Result."; FpOverflow = 0x15 "Result."; FpInexact = 0x16 "Result."; PermissionViolation = 0x17 "Right."; OpViolation = 0x18 "Contradiction between packets or lengths."; BadIndex = 0x19 "Resource index."; BadPid = 0x1a "Process.";
        BadJob = 0x1b "Job."; BadKey = 0x1c "Memory key."; BadAddress = 0x1d "Outside the region."; Cancelled = 0x1e "Cancelled."; Undeliverable = 0x1f "No endpoint."; Uncorrectable = 0x20 "Error."; UncorrectableTransient = 0x21 "Error."; TooLong = 0x22 "Length."; InitiatorError = 0x23 "The initiator gave up."; Dropped = 0x24 "Dropped."; }
    #[doc = "Atomic operation (UE table 3-21)."]
    AtomicOp { Min = 0 "Minimum."; Max = 1 "Maximum."; Sum = 2 "Sum."; Diff = 3 "Difference."; Prod = 4 "Product."; Lor = 5 "Logical or."; Land = 6 "Logical and."; Bor = 7 "Bitwise or."; Band = 8 "Bitwise and."; Lxor = 9 "Logical exclusive or."; Bxor = 10 "Bitwise exclusive or."; Read = 11 "Read."; Write = 12 "Write."; Cswap = 13 "Swap if equal.";
        CswapNe = 14 "If not equal."; CswapLe = 15 "If at most."; CswapLt = 16 "If less."; CswapGe = 17 "If at least."; CswapGt = 18 "If greater."; Mswap = 19 "Swap the bits of a mask."; Invalidate = 20 "Invalidate."; }
    #[doc = "Type of an atomic's elements (UE table 3-22)."]
    AtomicType { Int8 = 0 "Integer."; Uint8 = 1 "Integer."; Int16 = 2 "Integer."; Uint16 = 3 "Integer."; Int32 = 4 "Integer."; Uint32 = 5 "Integer."; Int64 = 6 "Integer."; Uint64 = 7 "Integer."; Int128 = 8 "Integer."; Uint128 = 9 "Integer."; Float = 10 "Floating."; Double = 11 "Floating."; FloatComplex = 12 "Floating."; DoubleComplex = 13 "Floating.";
        LongDouble = 14 "Floating."; LongDoubleComplex = 15 "Floating."; Bfloat16 = 16 "Floating."; Float16 = 17 "Floating."; }
}
