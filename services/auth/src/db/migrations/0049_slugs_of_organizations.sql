-- Up Migration
-- The slug of an organization is an attribute of its members.

drop trigger if exists organization_changed on organizations;
create trigger organization_changed
  after update of slug, plan, rate_limit on organizations for each row
  when ((old.slug, old.plan, old.rate_limit) is distinct from (new.slug, new.plan, new.rate_limit))
  execute function notify_changed_organization();
