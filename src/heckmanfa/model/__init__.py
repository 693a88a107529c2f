"""The mathematics: functions over blocks of rows and small matrices."""
