import type { RequestError } from '@tollgate/admin-clients/clients';
import { escapeControls } from '@tollgate/kit/table';

/** Exit codes of all commands. */
export const exitCodes = {
  /** The service refused the request, or cannot be reached. */
  failed: 1,
  /** The arguments or the configuration are invalid. */
  usage: 2,
  /** Something that a check looked at is not as it should be. */
  unhealthy: 3,
} as const;

/** A failure whose message says what is wrong and what to do. */
export class CommandFailure extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number = exitCodes.usage) {
    super(message);
    this.name = 'CommandFailure';
    this.exitCode = exitCode;
  }
}

/** A failure of a request, for the terminal: any server may have answered. */
export function describeRequestError({ code, url, message }: RequestError): string {
  const parts = [code, ...(url === undefined ? [] : [url]), message];
  return escapeControls(parts.join(': '));
}
