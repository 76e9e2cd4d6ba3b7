import { toObject } from '../../outbound/post-form.ts';
import { type Provider, rebase, toProfile } from '../provider.ts';

/** @see https://developers.kakao.com/docs/latest/en/kakaologin/rest-api */
export const kakao: Provider = {
  endpoints: {
    authorization: 'https://kauth.kakao.com/oauth/authorize',
    token: 'https://kauth.kakao.com/oauth/token',
  },
  scopes: ['account_email', 'profile_image', 'profile_nickname'],
  signInAgain: { prompt: 'login' },
  idTokenGrant: {
    keys: (baseUrl) => rebase('https://kauth.kakao.com/.well-known/jwks.json', baseUrl),
    issuers: (_claims, baseUrl) => [baseUrl === '' ? 'https://kauth.kakao.com' : baseUrl],
  },
  readProfile: async ({ get }) => {
    const user = toObject(await get('https://kapi.kakao.com/v2/user/me'));
    const account = toObject(user.kakao_account);
    const profile = toObject(account.profile);
    return toProfile({
      issuer: 'https://kapi.kakao.com',
      id: user.id,
      name: profile.nickname,
      userName: profile.nickname,
      picture: profile.profile_image_url,
      email: account.email,
      isVerified: account.is_email_verified === true && account.is_email_valid === true,
    });
  },
};
