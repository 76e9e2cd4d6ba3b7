/** The result of one check. */
export interface Finding {
  readonly check: 'settings' | 'port' | 'tls' | 'clock' | 'ready' | 'version' | 'envoy';
  /** URL, file or cluster that was checked. */
  readonly target: string;
  readonly ok: boolean;
  readonly detail: string;
  /** The version of the service, where this is what was checked. */
  readonly version?: string;
  /** Says what to do about a problem. */
  readonly remedy?: string;
}

type Check = Pick<Finding, 'check' | 'target'>;

export function pass(check: Check, detail: string): Finding {
  return { ...check, ok: true, detail };
}

export function fail(check: Check, detail: string, remedy: string): Finding {
  return { ...check, ok: false, detail, remedy };
}
