import { consoleClientId } from '@tollgate/admin-clients/first-party';
import { sendJson } from './auth-api.ts';

/** A person who may sign in to a console. */
export interface SignInOptions {
  /** Public URLs. */
  readonly consoleUrl: string;
  readonly authUrl: string;
  readonly email: string;
  readonly password: string;
  /** Cookies that the browser has before. */
  readonly cookie?: string;
  /** Page of the console to begin with. */
  readonly path?: string;
}

/** The browser after a sign-in. */
export interface SignedIn {
  /** `name=value` of the session cookie. */
  readonly cookie: string;
  /** `Set-Cookie` of the session. */
  readonly setCookie: string;
  /** Where the sign-in ends. */
  readonly location: string;
  /** `Set-Cookie` of the sign-in, before it completes. */
  readonly pendingCookie: string;
}

/**
 * Signs a person in without a browser: the person signs in with a password and gives the console
 * access over the API of the auth server.
 */
export async function signInByFetch(options: SignInOptions): Promise<SignedIn> {
  const { consoleUrl, authUrl, email, password, cookie = '', path = '/' } = options;
  const manual = { redirect: 'manual' } as const;
  const started = await fetch(consoleUrl + path, { ...manual, headers: { cookie } });
  const pendingCookie = started.headers.get('set-cookie') ?? '';
  const authorize = started.headers.get('location') ?? '';
  if (new URL(authorize).searchParams.get('client_id') !== consoleClientId)
    throw new Error(`the console leads to ${authorize} instead of its sign-in`);
  const redirect = await fetch(authorize, manual);
  const id = new URL(redirect.headers.get('location') ?? '', authUrl).searchParams.get('authorization_id');
  const credentials = { email, password };
  const session = await sendJson(`${authUrl}/token?grant_type=password`, { body: credentials });
  const token = String(session.access_token);
  const opened = `${authUrl}/oauth/authorizations/${id}`;
  // With an earlier consent, the answer is where to go to.
  const { redirect_url: known } = await sendJson(opened, { method: 'GET', token });
  const approval = { body: { action: 'approve' }, token };
  const callback = known ?? (await sendJson(`${opened}/consent`, approval)).redirect_url;
  const [pending = ''] = pendingCookie.split(';');
  const completed = await fetch(String(callback), {
    ...manual,
    headers: { cookie: [cookie, pending].filter(Boolean).join('; ') },
  });
  const setCookie = completed.headers.getSetCookie().find((each) => /^[\w-]*tollgate-console=/.test(each));
  if (setCookie === undefined) throw new Error(`no session: ${completed.status} ${await completed.text()}`);
  const [sessionCookie = ''] = setCookie.split(';');
  return {
    cookie: sessionCookie,
    setCookie,
    location: completed.headers.get('location') ?? '',
    pendingCookie,
  };
}
