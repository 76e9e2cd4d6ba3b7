import { toObject } from '../../outbound/post-form.ts';
import type { OAuth1Provider } from '../oauth1.ts';
import { toProfile } from '../provider.ts';

const api = 'https://api.twitter.com';

/** @see https://docs.x.com/resources/fundamentals/authentication/oauth-1-0a/obtaining-user-access-tokens */
export const twitter: OAuth1Provider = {
  requestToken: `${api}/oauth/request_token`,
  authorization: `${api}/oauth/authenticate`,
  accessToken: `${api}/oauth/access_token`,
  profile: `${api}/1.1/account/verify_credentials.json?include_email=true`,
  readProfile: (response) => {
    const user = toObject(response);
    return toProfile({
      issuer: `${api}/1.1/account/verify_credentials.json`,
      id: user.id_str,
      name: user.name,
      userName: user.screen_name,
      picture: user.profile_image_url_https,
      email: user.email,
      // The API returns confirmed addresses only.
      isVerified: true,
    });
  },
};
