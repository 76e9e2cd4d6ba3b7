import { toObject } from '../../outbound/post-form.ts';
import { type Provider, rebase, toProfile, toText } from '../provider.ts';

const origin = 'https://appleid.apple.com';

/**
 * The secret is a JWT that the operator signs. Apple sends the name once, at the first sign-in, in
 * the form of the callback.
 *
 * @see https://developer.apple.com/documentation/signinwithapple/configuring-your-webpage-for-sign-in-with-apple
 */
export const apple: Provider = {
  endpoints: { authorization: `${origin}/auth/authorize`, token: `${origin}/auth/token` },
  scopes: ['email', 'name'],
  authorizationParameters: { response_mode: 'form_post' },
  idToken: {
    keys: (baseUrl) => rebase(`${origin}/auth/keys`, baseUrl),
    issuers: (_claims, baseUrl) =>
      baseUrl === '' ? [origin, 'https://account.apple.com'] : [baseUrl, origin, 'https://account.apple.com'],
  },
  readProfile: ({ claims, callback }) =>
    toProfile({
      issuer: toText(claims.iss),
      id: claims.sub,
      name: readName(callback.get('user')),
      email: claims.email,
      // Apple accepts only addresses that it has verified. @see
      // https://developer.apple.com/documentation/signinwithapple/authenticating-users-with-sign-in-with-apple
      isVerified: String(claims.email_verified) === 'true',
      customClaims: { is_private_email: String(claims.is_private_email) === 'true' },
    }),
};

function readName(user: string | null): string {
  try {
    const { firstName, lastName } = toObject(toObject(JSON.parse(user ?? '{}')).name);
    return [toText(firstName), toText(lastName)].filter((part) => part !== '').join(' ');
  } catch {
    return '';
  }
}
