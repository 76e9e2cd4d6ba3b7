/** An OAuth error answer of the test server. */
export class ProtocolError extends Error {
  override name = 'ProtocolError';
  readonly code: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  /** `code` is the wire's `error`, `description` its `error_description`; the status is 400 unless given. */
  constructor(code: string, description: string, status = 400, headers: Record<string, string> = {}) {
    super(description);
    this.code = code;
    this.status = status;
    this.headers = headers;
  }

  /** The error as RFC 6749 §5.2 writes it. */
  toResponse(): Response {
    return Response.json(
      { error: this.code, error_description: this.message },
      { status: this.status, headers: { 'cache-control': 'no-store', ...this.headers } },
    );
  }
}
