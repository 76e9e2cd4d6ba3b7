import { toObject, toObjects } from '../../outbound/post-form.ts';
import { type Provider, toProfile, toText } from '../provider.ts';

const api = 'https://api.linkedin.com';

/**
 * Sign In with LinkedIn before OpenID Connect.
 *
 * @see https://learn.microsoft.com/en-us/linkedin/consumer/integrations/self-serve/sign-in-with-linkedin
 */
export const linkedin: Provider = {
  label: 'LinkedIn',
  endpoints: {
    authorization: `${api}/oauth/v2/authorization`,
    token: `${api}/oauth/v2/accessToken`,
  },
  scopes: ['r_emailaddress', 'r_liteprofile'],
  readProfile: async ({ get }) => {
    const user = toObject(
      await get(`${api}/v2/me`, {
        query: { projection: '(id,firstName,lastName,profilePicture(displayImage~:playableStreams))' },
      }),
    );
    const emails = toObject(
      await get(`${api}/v2/emailAddress`, { query: { q: 'members', projection: '(elements*(handle~))' } }),
    );
    const [element = {}] = toObjects(emails.elements);
    const name = [localized(user.firstName), localized(user.lastName)]
      .filter((part) => part !== '')
      .join(' ');
    return toProfile({
      issuer: api,
      id: user.id,
      name,
      picture: pictureUrl(user.profilePicture),
      email: toObject(element['handle~']).emailAddress,
      isVerified: true,
    });
  },
};

/** The text in the preferred locale, such as `en_US`. */
function localized(value: unknown): string {
  const { localized: texts, preferredLocale } = toObject(value);
  const { language, country } = toObject(preferredLocale);
  return toText(toObject(texts)[`${toText(language)}_${toText(country)}`]);
}

function pictureUrl(picture: unknown): string {
  const [image = {}] = toObjects(toObject(toObject(picture)['displayImage~']).elements);
  const [identifier = {}] = toObjects(image.identifiers);
  return toText(identifier.identifier);
}
