import type { User } from '../../domain/user.ts';
import { errors } from '../../errors.ts';
import type { Page, PageRequest } from '../../ports/page.ts';
import type { Services } from '../../services.ts';

/** Which users an administrator wants to see. */
export interface UserListing extends PageRequest {
  readonly aud: string;
  /** Part of email, phone or full name; empty for all. */
  readonly filter: string;
  /** `created_at`, `created_at asc` or `created_at desc`; the last when empty. */
  readonly sort: string;
}

/** Lists users, newest first unless asked otherwise. */
export type ListUsers = (listing: UserListing) => Promise<Page<User>>;

/** Creates {@link ListUsers}. */
export function createListUsers({ store }: Pick<Services, 'store'>): ListUsers {
  return ({ sort, ...listing }) => store.users.list({ ...listing, order: readOrder(sort) });
}

function readOrder(sort: string): 'asc' | 'desc' {
  const [field = '', direction = 'desc', ...rest] = sort.trim().toLowerCase().split(/\s+/);
  if (field === '') return 'desc';
  if (field !== 'created_at' || rest.length > 0)
    throw errors.validation_failed({
      message: `Bad Sort Parameters: bad field for sort ${JSON.stringify(sort.slice(0, 64))}, only created_at is known`,
    });
  if (direction !== 'asc' && direction !== 'desc')
    throw errors.validation_failed({
      message: `Bad Sort Parameters: bad direction for sort ${JSON.stringify(direction.slice(0, 64))}, only asc and desc allowed`,
    });
  return direction;
}
