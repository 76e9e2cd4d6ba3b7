import type { ProviderBehavior } from '../helpers/provider-server.ts';

/** A vendor's documented responses, and the identity that they mean. */
export interface VendorCase {
  readonly behavior: ProviderBehavior;
  /** Expected `identity_data`. */
  readonly identity: Readonly<Record<string, unknown>>;
  /** Expected parameters of the authorization request. */
  readonly authorization?: Readonly<Record<string, string>>;
  /** Parameters that the client gives. */
  readonly query?: Readonly<Record<string, string>>;
  /** Path after the base URL of the vendor. */
  readonly path?: string;
  /** Whether the provider has verified the email; otherwise a confirmation is mailed. */
  readonly isVerified?: boolean;
}

const image = 'https://images.example/ada';
const name = 'Ada Lovelace';
const email = (vendor: string) => `${vendor}@example.com`;
const tenant = '72f988bf-86f1-41af-91ab-2d7cd011db47';

/** By provider. */
export const vendorCases: Readonly<Record<string, VendorCase>> = {
  apple: {
    behavior: {
      authorizationPath: '/auth/authorize',
      tokenPath: '/auth/token',
      keysPath: '/auth/keys',
      claims: { sub: '001234.a1b2', email: email('apple'), email_verified: 'true', is_private_email: 'true' },
      formPost: { user: '{"name":{"firstName":"Ada","lastName":"Lovelace"},"email":"x@y.z"}' },
    },
    authorization: { response_mode: 'form_post', scope: 'email name' },
    identity: { sub: '001234.a1b2', full_name: name, custom_claims: { is_private_email: true } },
  },
  azure: {
    path: `/${tenant}`,
    behavior: {
      authorizationPath: `/${tenant}/oauth2/v2.0/authorize`,
      tokenPath: `/${tenant}/oauth2/v2.0/token`,
      keysPath: `/${tenant}/discovery/v2.0/keys`,
      issuer: `/${tenant}/v2.0`,
      claims: {
        sub: 'a-b',
        tid: tenant,
        name,
        email: email('azure'),
        preferred_username: 'ada',
        xms_edov: true,
      },
    },
    authorization: { scope: 'openid' },
    identity: { sub: 'a-b', full_name: name, preferred_username: 'ada' },
  },
  bitbucket: {
    behavior: {
      authorizationPath: '/site/oauth2/authorize',
      tokenPath: '/site/oauth2/access_token',
      payloads: {
        '/2.0/user': {
          uuid: '{1-2}',
          display_name: name,
          username: 'ada',
          links: { avatar: { href: image } },
        },
        '/2.0/user/emails': {
          values: [{ email: email('bitbucket'), is_primary: true, is_confirmed: true, type: 'email' }],
        },
      },
    },
    authorization: { scope: 'account email' },
    identity: { sub: '{1-2}', full_name: name, avatar_url: image },
  },
  discord: {
    behavior: {
      authorizationPath: '/api/oauth2/authorize',
      tokenPath: '/api/oauth2/token',
      payloads: {
        '/api/users/@me': {
          id: '80351110224678912',
          username: 'ada',
          discriminator: '1337',
          global_name: name,
          avatar: 'a_8342729096ea3675442027381ff50dfe',
          verified: true,
          email: email('discord'),
        },
      },
    },
    authorization: { scope: 'email identify' },
    identity: {
      sub: '80351110224678912',
      full_name: 'ada#1337',
      avatar_url:
        'https://cdn.discordapp.com/avatars/80351110224678912/a_8342729096ea3675442027381ff50dfe.gif',
      custom_claims: { global_name: name },
    },
  },
  facebook: {
    behavior: {
      authorizationPath: '/dialog/oauth',
      tokenPath: '/oauth/access_token',
      payloads: {
        '/me': {
          id: '4',
          name,
          first_name: 'Ada',
          email: email('facebook'),
          picture: { data: { url: image } },
        },
      },
    },
    authorization: { scope: 'email' },
    identity: { sub: '4', full_name: name, avatar_url: image, nickname: name },
  },
  figma: {
    behavior: {
      authorizationPath: '/oauth',
      tokenPath: '/v1/oauth/token',
      payloads: { '/v1/me': { id: '813', handle: name, img_url: image, email: email('figma') } },
    },
    authorization: { scope: 'current_user:read' },
    identity: { sub: '813', full_name: name, avatar_url: image },
  },
  fly: {
    behavior: {
      authorizationPath: '/oauth/authorize',
      tokenPath: '/oauth/token',
      payloads: {
        '/oauth/token/info': {
          user_id: 'fly-1',
          user_name: name,
          email: email('fly'),
          organizations: [{ id: 'org-1', role: 'admin' }],
        },
      },
    },
    authorization: { scope: 'read' },
    identity: { sub: 'fly-1', full_name: name, custom_claims: { organizations: [{ id: 'org-1' }] } },
  },
  github: {
    behavior: {
      authorizationPath: '/login/oauth/authorize',
      tokenPath: '/login/oauth/access_token',
      payloads: {
        '/api/v3/user': { id: 583231, login: 'ada', name, avatar_url: image },
        '/api/v3/user/emails': [
          { email: 'unused@example.com', primary: false, verified: false, visibility: null },
          { email: email('github'), primary: true, verified: true, visibility: 'public' },
        ],
      },
    },
    authorization: { scope: 'user:email' },
    identity: {
      sub: '583231',
      provider_id: '583231',
      user_name: 'ada',
      preferred_username: 'ada',
      avatar_url: image,
    },
  },
  gitlab: {
    behavior: {
      authorizationPath: '/oauth/authorize',
      tokenPath: '/oauth/token',
      payloads: {
        '/api/v4/user': {
          id: 5,
          name,
          username: 'ada',
          avatar_url: image,
          email: email('gitlab'),
          confirmed_at: '2026-01-01T00:00:00Z',
        },
        '/api/v4/user/emails': [{ id: 1, email: 'second@example.com', confirmed_at: null }],
      },
    },
    authorization: { scope: 'read_user' },
    identity: { sub: '5', full_name: name, user_name: 'ada' },
  },
  google: {
    behavior: {
      claims: {
        sub: '1122',
        name,
        picture: image,
        email: email('google'),
        email_verified: true,
        hd: 'example.com',
      },
    },
    authorization: { scope: 'openid email profile' },
    identity: { sub: '1122', full_name: name, picture: image, custom_claims: { hd: 'example.com' } },
  },
  kakao: {
    behavior: {
      authorizationPath: '/oauth/authorize',
      tokenPath: '/oauth/token',
      payloads: {
        '/v2/user/me': {
          id: 123456789,
          kakao_account: {
            profile: { nickname: name, profile_image_url: image },
            is_email_valid: true,
            is_email_verified: true,
            email: email('kakao'),
          },
        },
      },
    },
    authorization: { scope: 'account_email profile_image profile_nickname' },
    identity: { sub: '123456789', full_name: name, avatar_url: image },
  },
  keycloak: {
    path: '/realms/shop',
    behavior: {
      authorizationPath: '/realms/shop/protocol/openid-connect/auth',
      tokenPath: '/realms/shop/protocol/openid-connect/token',
      payloads: {
        '/realms/shop/protocol/openid-connect/userinfo': {
          sub: 'k-1',
          name,
          preferred_username: 'ada',
          email: email('keycloak'),
          email_verified: true,
        },
      },
    },
    authorization: { scope: 'openid profile email' },
    identity: { sub: 'k-1', full_name: name, preferred_username: 'ada' },
  },
  linkedin: {
    behavior: {
      authorizationPath: '/oauth/v2/authorization',
      tokenPath: '/oauth/v2/accessToken',
      payloads: {
        '/v2/me': {
          id: 'yrZCpj2Z12',
          firstName: { localized: { en_US: 'Ada' }, preferredLocale: { country: 'US', language: 'en' } },
          lastName: { localized: { en_US: 'Lovelace' }, preferredLocale: { country: 'US', language: 'en' } },
          profilePicture: { 'displayImage~': { elements: [{ identifiers: [{ identifier: image }] }] } },
        },
        '/v2/emailAddress': {
          elements: [{ handle: 'urn:li:emailAddress:1', 'handle~': { emailAddress: email('linkedin') } }],
        },
      },
    },
    authorization: { scope: 'r_emailaddress r_liteprofile' },
    identity: { sub: 'yrZCpj2Z12', full_name: name, avatar_url: image },
  },
  linkedin_oidc: {
    behavior: {
      authorizationPath: '/oauth/v2/authorization',
      tokenPath: '/oauth/v2/accessToken',
      keysPath: '/oauth/openid/jwks',
      issuer: '/oauth',
      claims: {
        sub: 'oidc-782',
        name,
        picture: image,
        email: email('linkedin_oidc'),
        email_verified: 'true',
      },
    },
    authorization: { scope: 'openid email profile' },
    identity: { sub: 'oidc-782', full_name: name, picture: image },
  },
  notion: {
    behavior: {
      authorizationPath: '/v1/oauth/authorize',
      tokenPath: '/v1/oauth/token',
      payloads: {
        '/v1/users/me': {
          object: 'user',
          bot: {
            owner: {
              type: 'user',
              user: { id: 'd40e', name, avatar_url: image, person: { email: email('notion') } },
            },
          },
        },
      },
    },
    authorization: { owner: 'user' },
    identity: { sub: 'd40e', full_name: name, avatar_url: image },
  },
  slack: {
    behavior: {
      authorizationPath: '/oauth/authorize',
      tokenPath: '/api/oauth.access',
      token: { ok: true },
      payloads: {
        '/api/openid.connect.userInfo': {
          ok: true,
          sub: 'U0R7MFMJM',
          'https://slack.com/user_id': 'U0R7MFMJM',
          'https://slack.com/team_id': 'T0R7GR',
          email: email('slack'),
          name,
          picture: image,
        },
      },
    },
    authorization: { scope: 'profile email openid' },
    identity: { sub: 'U0R7MFMJM', full_name: name, custom_claims: { 'https://slack.com/team_id': 'T0R7GR' } },
  },
  slack_oidc: {
    behavior: {
      authorizationPath: '/openid/connect/authorize',
      tokenPath: '/api/openid.connect.token',
      token: { ok: true },
      payloads: {
        '/api/openid.connect.userInfo': {
          ok: true,
          'https://slack.com/user_id': 'U0R7MFMJN',
          email: email('slack_oidc'),
          email_verified: true,
          name,
          picture: image,
        },
      },
    },
    authorization: { scope: 'profile email openid' },
    identity: { sub: 'U0R7MFMJN', full_name: name, picture: image },
  },
  snapchat: {
    behavior: {
      authorizationPath: '/accounts/oauth2/auth',
      tokenPath: '/accounts/oauth2/token',
      payloads: {
        '/v1/me': {
          data: {
            me: {
              externalId: 'CAESIPiR',
              displayName: name,
              bitmoji: { avatar: image },
              email: email('snapchat'),
            },
          },
          errors: [],
        },
      },
    },
    identity: { sub: 'CAESIPiR', full_name: name, avatar_url: image },
  },
  spotify: {
    behavior: {
      authorizationPath: '/authorize',
      tokenPath: '/api/token',
      payloads: {
        '/v1/me': {
          id: 'ada-1',
          display_name: name,
          email: email('spotify'),
          images: [
            { url: 'https://images.example/small', height: 64, width: 64 },
            { url: image, height: 300, width: 300 },
          ],
        },
      },
    },
    authorization: { scope: 'user-read-email' },
    isVerified: false,
    identity: { sub: 'ada-1', full_name: name, avatar_url: image },
  },
  twitch: {
    behavior: {
      authorizationPath: '/oauth2/authorize',
      tokenPath: '/oauth2/token',
      token: { scope: ['user:read:email'] },
      payloads: {
        '/helix/users': {
          data: [
            {
              id: '141981764',
              login: 'ada',
              display_name: 'Ada',
              profile_image_url: image,
              email: email('twitch'),
            },
          ],
        },
      },
    },
    authorization: { scope: 'user:read:email' },
    identity: { sub: '141981764', full_name: 'ada', nickname: 'Ada', slug: 'Ada', avatar_url: image },
  },
  workos: {
    behavior: {
      authorizationPath: '/sso/authorize',
      tokenPath: '/sso/token',
      token: {
        profile: {
          id: 'prof_01',
          connection_id: 'conn_01',
          organization_id: 'org_01',
          email: email('workos'),
          first_name: 'Ada',
          last_name: 'Lovelace',
        },
      },
    },
    query: { workos_provider: 'GoogleOAuth', organization: 'org_01' },
    authorization: { provider: 'GoogleOAuth', organization: 'org_01' },
    identity: {
      sub: 'prof_01',
      full_name: name,
      custom_claims: { connection_id: 'conn_01', organization_id: 'org_01' },
    },
  },
  x: {
    behavior: {
      authorizationPath: '/i/oauth2/authorize',
      tokenPath: '/2/oauth2/token',
      payloads: {
        '/2/users/me': {
          data: {
            id: '2244994945',
            name,
            username: 'ada',
            profile_image_url: image,
            confirmed_email: email('x'),
          },
        },
      },
    },
    authorization: {
      scope: 'users.email tweet.read users.read offline.access',
      code_challenge_method: 'S256',
    },
    identity: { sub: '2244994945', full_name: name, user_name: 'ada' },
  },
  zoom: {
    behavior: {
      authorizationPath: '/oauth/authorize',
      tokenPath: '/oauth/token',
      payloads: {
        '/v2/users/me': {
          id: 'zoom-1',
          first_name: 'Ada',
          last_name: 'Lovelace',
          email: email('zoom'),
          verified: 1,
          pic_url: image,
        },
      },
    },
    identity: { sub: 'zoom-1', full_name: name, picture: image },
  },
};
