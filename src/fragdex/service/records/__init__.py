"""What the service remembers: tables, migrations, identifiers, tenants and keys."""
