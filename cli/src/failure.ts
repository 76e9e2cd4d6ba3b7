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
