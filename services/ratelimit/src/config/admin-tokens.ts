/** Rights of callers of the counter API. */
export const adminRights = ['read', 'reserve', 'settings', 'write'] as const;

export type AdminRight = (typeof adminRights)[number];

/** A token of ADMIN_TOKENS. */
export interface AdminToken {
  /** The caller in audit lines. */
  readonly name: string;
  readonly rights: ReadonlySet<AdminRight>;
  readonly token: string;
}

/** The form of one item: `billing:read+reserve:<token>`. */
export const adminTokensForm =
  '<name>:<rights>:<token>, several separated by commas: rights are read, reserve, settings and write, joined by +; tokens have at least 16 letters, digits or . _ ~ + / = -';
const itemForm = /^([a-z0-9][a-z0-9-]{0,39}):([a-z+]+):([\w.~+/=-]{16,})$/;

/** Undefined if an item is invalid, or a name or a token is there twice. */
export function parseAdminTokens(text: string): readonly AdminToken[] | undefined {
  const tokens: AdminToken[] = [];
  if (text.trim() === '') return tokens;
  for (const item of text.split(',')) {
    const [, name = '', list = '', token = ''] = itemForm.exec(item.trim()) ?? [];
    const rights = adminRights.filter((right) => list.split('+').includes(right));
    const isKnown = name !== '' && rights.length === list.split('+').length;
    if (!isKnown || tokens.some((other) => other.name === name || other.token === token)) return undefined;
    tokens.push({ name, rights: new Set(rights), token });
  }
  return tokens;
}
