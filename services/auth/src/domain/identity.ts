import type { JsonObject } from './json.ts';

/** One way in which a user is known: email, phone, or an account with an external provider. */
export interface Identity {
  readonly id: string;
  readonly userId: string;
  readonly provider: string;
  /** The user there; for email and phone the id of the user here. */
  readonly providerId: string;
  readonly data: JsonObject;
  /** Empty for none. */
  readonly email: string;
  readonly lastSignInAt: Date | undefined;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** The identity of a user who signs up by email or phone. */
export function contactIdentityData(options: {
  readonly userId: string;
  readonly contact: { readonly email: string } | { readonly phone: string };
  readonly verified: boolean;
  /** What the user said of themselves at sign-up. */
  readonly data: JsonObject;
}): JsonObject {
  const { userId, contact, verified, data } = options;
  return {
    ...data,
    sub: userId,
    ...contact,
    email_verified: verified && 'email' in contact,
    phone_verified: verified && 'phone' in contact,
  };
}
