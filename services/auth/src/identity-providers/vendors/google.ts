import { type Provider, toProfile, toText } from '../provider.ts';

const issuer = 'https://accounts.google.com';

/** @see https://developers.google.com/identity/openid-connect/openid-connect */
export const google: Provider = {
  endpoints: { issuer },
  scopes: ['openid', 'email', 'profile'],
  pkce: true,
  readProfile: ({ claims }) => {
    const hostedDomain = toText(claims.hd);
    return toProfile({
      issuer,
      id: claims.sub,
      name: claims.name,
      picture: claims.picture,
      email: claims.email,
      isVerified: claims.email_verified === true,
      customClaims: hostedDomain === '' ? {} : { hd: hostedDomain },
    });
  },
};
