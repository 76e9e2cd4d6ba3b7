/**
 * Limits on the work of one client, and on the sizes of what it sends. `ClientBuffers` limits the
 * memory of all clients together.
 */
export interface Limits {
  /** Maximum gRPC message, compressed or not. */
  readonly maxMessageBytes: number;
  /**
   * Decoded size of a header list (SETTINGS_MAX_HEADER_LIST_SIZE); the encoded block may be as
   * large.
   */
  readonly maxHeaderListBytes: number;
  /** CONTINUATION frames of one header block: each may be empty (CVE-2024-27983). */
  readonly maxContinuationFrames: number;
  /**
   * Streams open at the same time on one connection (SETTINGS_MAX_CONCURRENT_STREAMS). A stream
   * that was reset counts until its handler has returned, so that resets do not multiply the work
   * (CVE-2023-44487, CVE-2025-8671).
   */
  readonly maxConcurrentStreams: number;
  /**
   * Frames that a connection may send without making progress: SETTINGS, PING, PRIORITY,
   * WINDOW_UPDATE, RST_STREAM, empty DATA and unknown ones. The budget refills with time and with
   * completed calls, so that it stops floods (CVE-2019-9512, -9514, -9515, -9518, CVE-2023-44487)
   * and not clients under load.
   */
  readonly overheadBurst: number;
  readonly overheadPerSecond: number;
  readonly overheadPerCall: number;
  /** Unsent reply bytes above which the connection is not read. */
  readonly maxWriteBufferBytes: number;
  /** Time after which a client that reads nothing is disconnected. */
  readonly writeStallTimeoutMs: number;
  /** Time for a request to arrive completely. */
  readonly requestTimeoutMs: number;
  /** Time for the TLS handshake and the preface of a connection. */
  readonly prefaceTimeoutMs: number;
  /** Concurrent connections; at the limit, the one idle for the longest time is closed. */
  readonly maxConnections: number;
}

const mebibyte = 1024 * 1024;

/** Suitable for Envoy, and for gRPC clients with their defaults. */
export const defaultLimits: Limits = {
  maxMessageBytes: mebibyte,
  maxHeaderListBytes: 16 * 1024,
  maxContinuationFrames: 8,
  maxConcurrentStreams: 1000,
  overheadBurst: 2000,
  overheadPerSecond: 500,
  overheadPerCall: 4,
  maxWriteBufferBytes: mebibyte,
  writeStallTimeoutMs: 20_000,
  requestTimeoutMs: 30_000,
  prefaceTimeoutMs: 10_000,
  maxConnections: 10_000,
};

/** A token bucket: refills with time up to its burst. */
export class Budget {
  readonly #burst: number;
  readonly #perSecond: number;
  #tokens: number;
  #filledMs: number;

  constructor(burst: number, perSecond: number, nowMs: number) {
    this.#burst = burst;
    this.#perSecond = perSecond;
    this.#tokens = burst;
    this.#filledMs = nowMs;
  }

  /** Takes one token; false when there is none. */
  take(nowMs: number): boolean {
    if (this.#tokens < 1) {
      const refill = ((nowMs - this.#filledMs) * this.#perSecond) / 1000;
      this.#tokens = Math.min(this.#burst, this.#tokens + Math.max(0, refill));
      this.#filledMs = nowMs;
      if (this.#tokens < 1) return false;
    }
    this.#tokens--;
    return true;
  }

  /** Adds tokens that were earned otherwise. */
  add(tokens: number): void {
    this.#tokens = Math.min(this.#burst, this.#tokens + tokens);
  }
}
