import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Entry } from '@tollgate/rules/match';
import type { Rate } from '@tollgate/rules/rule-set';
import type { LimitOverride } from '../decision/wire/request.ts';
import { errors } from '../errors.ts';
import type { HitUnit } from '../stores/counter-store.ts';

/** Hits that were added to a counter. */
export interface TakenHits {
  readonly key: string;
  readonly unit: HitUnit;
  /** End of the window, Unix time. */
  readonly endSeconds: number;
  readonly rate?: Rate;
  /** The limit, of which other replicas may know that it was reached. */
  readonly capacity: number;
}

/** Hits that were taken, and of which the real number is not known yet. Its text is its id. */
export interface Reservation {
  readonly domain: string;
  readonly descriptors: readonly (readonly Entry[])[];
  /** Limits of descriptors themselves, by position; absent without any. */
  readonly limits?: readonly (LimitOverride | null)[];
  readonly hits: number;
  readonly taken: readonly TakenHits[];
  /** Unix time. */
  readonly untilSeconds: number;
  readonly nonce: string;
}

/** The body of a commit is limited, too. */
export const maxIdChars = 16 * 1024;

export function encodeId(signingKey: string, reservation: Reservation): string {
  const content = Buffer.from(JSON.stringify(reservation)).toString('base64url');
  return `${content}.${sign(signingKey, content).toString('base64url')}`;
}

/** @throws AppError `reservation_invalid`, `reservations_need_token`. */
export function decodeId(signingKey: string, id: string): Reservation {
  if (signingKey === '') throw errors.reservations_need_token();
  const [content = '', signature = ''] = id.split('.');
  const expected = sign(signingKey, content);
  const given = Buffer.from(signature, 'base64url');
  if (given.length !== expected.length || !timingSafeEqual(given, expected))
    throw errors.reservation_invalid();
  // Parsed boundary: signed by a replica.
  return JSON.parse(Buffer.from(content, 'base64url').toString()) as Reservation;
}

function sign(signingKey: string, content: string): Buffer {
  return createHmac('sha256', `tollgate reservation ${signingKey}`).update(content).digest();
}
