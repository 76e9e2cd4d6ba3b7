/** What a decision looks at of a request. */
export interface AuthzRequest {
  /** In upper case. */
  readonly method: string;
  /** As the client sent it, with its query: nothing decoded, nothing resolved. */
  readonly path: string;
  /** Values of all `authorization` headers there were, in order; a list joined by a proxy is one value. */
  readonly authorization: readonly string[];
  /** Names of all headers there were, in lower case. */
  readonly headerNames: readonly string[];
}
