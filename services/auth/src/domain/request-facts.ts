import type { AuditEntry } from './audit-entry.ts';

/** What every use case knows of the request it serves. */
export interface RequestFacts {
  /** When it came, Unix time in milliseconds: one moment for all that it causes. */
  readonly nowMs: number;
  /** IP address of the client, trusted proxies looked through. */
  readonly clientAddress: string;
  /** The network of the client, for limits; undefined when a proxy hides it. */
  readonly clientNetwork?: string | undefined;
  /** Empty for none. */
  readonly userAgent: string;
  readonly requestId: string;
  /** What the client calls the kind of session that it asks for, if the settings know it. */
  readonly sessionTag?: string;
  /** Told of each entry that the request makes for the audit log. */
  readonly onAudit?: (entry: AuditEntry) => void;
}
