import type { JsonObject } from './json.ts';
import type { Session } from './session.ts';

/** A session as callers see it; `currentId` is the one that asks. Keys whose value is absent are left out. */
export function toSessionJson(session: Session, currentId?: string): JsonObject {
  const { refreshedAt, notAfter } = session;
  return {
    id: session.id,
    current: session.id === currentId,
    created_at: session.createdAt.toISOString(),
    ...(refreshedAt && { refreshed_at: refreshedAt.toISOString() }),
    ...(notAfter && { not_after: notAfter.toISOString() }),
    aal: session.aal,
    amr: session.methods.map(({ method, at }) => ({ method, timestamp: Math.floor(at.getTime() / 1000) })),
    user_agent: session.userAgent,
    ip: session.ip,
    ...(session.tag !== '' && { tag: session.tag }),
  };
}
