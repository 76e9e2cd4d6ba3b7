/** Bounds on what one client can make the server hold or do. Each names the attack or mistake that it stops. */
export interface Limits {
  /** Largest gRPC message, compressed or not. Also the size of a stream's receive window, so that none is ever enlarged. */
  readonly maxMessageBytes: number;
  /** Decoded size of a header list (SETTINGS_MAX_HEADER_LIST_SIZE); the encoded block may be as large. */
  readonly maxHeaderListBytes: number;
  /** CONTINUATION frames of one header block: each may be empty (CVE-2024-27983). */
  readonly maxContinuationFrames: number;
  /** Streams open at the same time on one connection (SETTINGS_MAX_CONCURRENT_STREAMS). */
  readonly maxConcurrentStreams: number;
  /** Request bytes of incomplete messages on one connection: its receive window. */
  readonly connectionWindowBytes: number;
  /**
   * Frames that a connection may send without making progress: SETTINGS, PING, PRIORITY, WINDOW_UPDATE, RST_STREAM, empty
   * DATA and unknown ones. The budget refills with time and with completed calls, so that clients under load are not hit
   * and floods (CVE-2019-9512, -9514, -9515, -9518, CVE-2023-44487) are.
   */
  readonly overheadBurst: number;
  readonly overheadPerSecond: number;
  readonly overheadPerCall: number;
  /** Replies that wait for a slow reader; beyond it the connection is not read from. */
  readonly maxWriteBufferBytes: number;
  /** How long such a reader may take nothing at all before its connection is cut. */
  readonly writeStallTimeoutMs: number;
  /** How long a request may take to arrive completely. */
  readonly requestTimeoutMs: number;
  /** How long a connection may take until its TLS handshake and its preface are complete. */
  readonly prefaceTimeoutMs: number;
  /** Connections at the same time; at the bound the one that has been idle for longest is closed. */
  readonly maxConnections: number;
}

const mebibyte = 1024 * 1024;

/** Enough for Envoy and for every gRPC client with its defaults. */
export const defaultLimits: Limits = {
  maxMessageBytes: mebibyte,
  maxHeaderListBytes: 16 * 1024,
  maxContinuationFrames: 8,
  maxConcurrentStreams: 1000,
  connectionWindowBytes: 4 * mebibyte,
  overheadBurst: 2000,
  overheadPerSecond: 500,
  overheadPerCall: 4,
  maxWriteBufferBytes: mebibyte,
  writeStallTimeoutMs: 20_000,
  requestTimeoutMs: 30_000,
  prefaceTimeoutMs: 10_000,
  maxConnections: 10_000,
};
