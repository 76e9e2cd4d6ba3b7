/** Whole seconds until something may be sent again; 0 when it may now. */
export function secondsUntilNext(sentAt: Date | undefined, spacingMs: number, nowMs: number): number {
  if (sentAt === undefined) return 0;
  return Math.max(0, Math.ceil((sentAt.getTime() + spacingMs - nowMs) / 1000));
}

/** What the caller is told until then. */
export function spacingMessage(seconds: number): string {
  return `For security purposes, you can only request this after ${seconds} seconds.`;
}
