import { AuthApiError, AuthClient } from '@supabase/auth-js';
import { timedFetch } from '../timed-fetch.ts';

/** How a user reaches the platform. */
export interface PersonOptions {
  readonly name: string;
  /** The auth server, as users see it. */
  readonly authUrl: string;
  /** The mailbox of development mode. */
  readonly mailboxUrl: string;
  readonly signal: AbortSignal;
}

/** A user with an unmodified auth-js. Methods answer in a few words what came of it, as the table shows it. */
export interface Person {
  readonly name: string;
  readonly email: string;
  readonly password: string;
  /** Absent until they have signed up. */
  userId(): string | undefined;
  /** The access token of the last sign-in, also after signing out. */
  token(): string;
  signUp(): Promise<string>;
  /** Follows the link in the mail. */
  confirm(): Promise<string>;
  signIn(): Promise<string>;
  signOut(): Promise<string>;
}

/** Makes somebody who has not signed up yet. */
export function createPerson({ name, authUrl, mailboxUrl, signal }: PersonOptions): Person {
  const email = `${name}@example.com`;
  const password = 'correct horse';
  const request = timedFetch(signal);
  const auth = new AuthClient({
    url: authUrl,
    autoRefreshToken: false,
    persistSession: true,
    storage: memoryStorage(),
    fetch: request,
  });
  let userId: string | undefined;
  let token = '';

  return {
    name,
    email,
    password,
    userId: () => userId,
    token: () => token,
    async signUp() {
      const { data, error } = await auth.signUp({ email, password });
      if (error !== null) return refusal(error);
      userId = data.user?.id;
      return data.session === null ? 'to be confirmed' : 'signed in';
    },
    async confirm() {
      const link = linkIn(await (await request(`${mailboxUrl}.json?to=${email}`)).text());
      if (link === undefined) return 'no mail';
      const response = await request(link, { redirect: 'manual' });
      const target = response.headers.get('location') ?? '';
      return `${response.status} ${/[#&]access_token=/.test(target) ? 'confirmed' : 'not confirmed'}`;
    },
    async signIn() {
      const { data, error } = await auth.signInWithPassword({ email, password });
      if (error !== null) return refusal(error);
      userId = data.user.id;
      token = data.session.access_token;
      return 'signed in';
    },
    async signOut() {
      const { error } = await auth.signOut();
      return error === null ? 'signed out' : refusal(error);
    },
  };
}

function refusal(error: Error): string {
  // Anything else is no answer, which ends the table.
  if (!(error instanceof AuthApiError)) throw error;
  return `${error.status} ${error.code}`;
}

/** The link of the newest mail, as its HTML has it. */
function linkIn(mailbox: string): string | undefined {
  return mailbox.match(/http:\/\/[^" ]*\/verify\?[^"\\<]*/)?.[0].replaceAll('&amp;', '&');
}

function memoryStorage() {
  const kept = new Map<string, string>();
  return {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  };
}
