/** PEM text or bytes. */
export type Pem = string | Uint8Array;

/** Options of `nodeTransport`. */
export interface NodeTransportOptions {
  /** The client's certificate, with its chain, for mutual TLS: shown to every https server that asks for one. */
  cert?: Pem;
  /** The private key of `cert`; may be encrypted. */
  key?: Pem;
  /** Password of an encrypted `key` (or `pfx`). */
  passphrase?: string;
  /** Certificate and key as PKCS #12, in place of `cert` and `key`. */
  pfx?: Uint8Array;
  /** Authorities to trust in place of the built-in ones. */
  ca?: Pem | readonly Pem[];
  /** A file of authorities, added to `ca`. */
  caFile?: string;
  /** A folder whose `.pem`, `.crt` and `.cer` files are authorities, added to `ca`. */
  caPath?: string;
  /** Whether servers must prove who they are. Default true; never switch it off in production. */
  verify?: boolean;
  /** `http://` or `https://` URL of a proxy; user and password in it become Basic credentials for the proxy alone. */
  proxy?: string | URL;
  /** Hosts reached without the proxy: `example.com` (and all below it), `.example.com` (only below it), `host:port`, `*`. */
  noProxy?: readonly string[];
  /** Milliseconds until a connection (with proxy and TLS) must stand; 0 means no end. Default 10,000. */
  connectTimeoutMs?: number;
  /** Milliseconds without a byte in either direction until a request fails; 0 means no end. Default 60,000. */
  idleTimeoutMs?: number;
  /** Connections to one host at a time; more requests wait. Default 64. */
  maxSockets?: number;
  /** Whether connections are kept for the next request. Default true. */
  keepAlive?: boolean;
}

/** `fetch`, shaped for a Client's option of that name, that closes what it opened. */
export interface NodeTransport {
  (url: string | URL | Request, init?: RequestInit): Promise<Response>;
  /** Ends idle connections and refuses new requests; running ones end by themselves. Idempotent. */
  close(): void;
  [Symbol.dispose](): void;
}
